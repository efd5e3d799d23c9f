// SPDX-License-Identifier: MIT

// The server of echo_server for Go: prints PORT n, echoes until its input ends. A goroutine for each connection, the net package, as
// everybody writes it (it sets TCP_NODELAY by itself). The argument is GOMAXPROCS.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
)

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	if len(os.Args) > 1 {
		threads, err := strconv.Atoi(os.Args[1])
		if err != nil {
			os.Exit(2)
		}
		runtime.GOMAXPROCS(threads)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("PORT %d\n", listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				os.Exit(1)
			}
			go serve(connection)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
}

// SPDX-License-Identifier: MIT
// The server of echo_server for Tokio: prints PORT n, echoes until its input ends. A task for each connection. One thread: the
// current_thread runtime, its fastest; several: the multi-threaded one.
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn serve(mut stream: TcpStream) {
    let mut buffer = [0u8; 4096];
    while let Ok(n) = stream.read(&mut buffer).await {
        if n == 0 || stream.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}

async fn accept_all() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("PORT {}", listener.local_addr().unwrap().port());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(serve(stream));
    }
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |text| text.parse().unwrap());
    let mut builder = if threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_io().build().unwrap();
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        std::io::stdin().read_to_end(&mut rest).ok();
        std::process::exit(0);
    });
    runtime.block_on(accept_all());
}

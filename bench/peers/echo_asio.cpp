// SPDX-License-Identifier: MIT
// The server of echo_server for Asio: prints PORT n, echoes until its input ends. A context for each thread, connections dealt
// out in turn, callbacks, and the concurrency hint that leaves out the locks: the fastest of its forms. What it tries before it waits
// (a send is attempted at once) is its own.
#include <asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

using asio::ip::tcp;

class session : public std::enable_shared_from_this<session> {
	tcp::socket socket;
	char buffer[4096];

    public:
	explicit session(tcp::socket s) : socket(std::move(s))
	{
	}
	void read()
	{
		socket.async_read_some(asio::buffer(buffer), [self = shared_from_this()](asio::error_code error, std::size_t n) {
			if (!error)
				self->write(n);
		});
	}
	void write(std::size_t n)
	{
		asio::async_write(socket, asio::buffer(buffer, n), [self = shared_from_this()](asio::error_code error, std::size_t) {
			if (!error)
				self->read();
		});
	}
};

// One thread: everything on one context, which is told so. Several: who accepts runs on the first.
struct server {
	std::deque<asio::io_context> contexts;
	std::size_t turn = 0;
	std::unique_ptr<tcp::acceptor> acceptor;

	void accept()
	{
		asio::io_context &context = contexts[turn++ % contexts.size()];
		acceptor->async_accept(context, [this](asio::error_code error, tcp::socket socket) {
			if (error)
				std::_Exit(1);
			socket.set_option(tcp::no_delay(true));
			auto one = std::make_shared<session>(std::move(socket));
			if (contexts.size() == 1)
				one->read();
			else
				asio::post(contexts[(turn - 1) % contexts.size()], [one] { one->read(); });
			accept();
		});
	}
};

int main(int argc, char **argv)
{
	int threads = argc > 1 ? std::atoi(argv[1]) : 1;
	server all;
	for (int i = 0; i < threads; i++)
		all.contexts.emplace_back(threads == 1 ? ASIO_CONCURRENCY_HINT_UNSAFE_IO : 1);
	all.acceptor.reset(new tcp::acceptor(all.contexts[0], tcp::endpoint(asio::ip::address_v4::loopback(), 0)));
	all.accept();
	std::vector<std::thread> running;
	std::deque<asio::executor_work_guard<asio::io_context::executor_type>> guards;
	for (auto &context : all.contexts) {
		guards.emplace_back(context.get_executor());
		running.emplace_back([&context] { context.run(); });
	}
	std::printf("PORT %d\n", int(all.acceptor->local_endpoint().port()));
	std::fflush(stdout);
	char byte;
	while (read(0, &byte, 1) > 0)
		;
	std::_Exit(0);
}

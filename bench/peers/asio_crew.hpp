// SPDX-License-Identifier: MIT
// An io_context and the threads that run it.
#pragma once
#include <cstdlib> // first: Asio asks libstdc++ how to allocate, and all files of a program must get the same answer
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>
#include <vector>

class asio_crew {
	asio::io_context queue;
	asio::executor_work_guard<asio::io_context::executor_type> guard;
	std::vector<std::thread> threads;

      public:
	explicit asio_crew(int count) : queue(count), guard(queue.get_executor())
	{
		for (int i = 0; i < count; i++)
			threads.emplace_back([this] { queue.run(); });
	}
	~asio_crew()
	{
		guard.reset();
		for (auto &thread : threads)
			thread.join();
	}
	asio::io_context &context()
	{
		return queue;
	}
	template <typename Task> void post(Task &&task)
	{
		asio::post(queue, std::forward<Task>(task));
	}
};

/* SPDX-License-Identifier: MIT */
/* With others: the openssl command as a client and as a server, curl as a client. Without them it is said so. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "meet.h"

extern char **environ;

static struct hive_tls_context *server_context;
static uint16_t port;
static char client_saw[256], host_seen[256], version_seen[16];

/* ---- programs ---- */

struct program {
	pid_t pid;
	FILE *in, *out; /* its own input and output, the other way round */
};

static bool is_there(const char *name)
{
	char command[100];

	snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
	return system(command) == 0;
}

static struct program program_start(char *const *argv)
{
	struct program p;
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	CHECK_OK(pipe2(in, O_CLOEXEC));
	CHECK_OK(pipe2(out, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	CHECK_OK(posix_spawnp(&p.pid, argv[0], &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	p.in = fdopen(in[1], "w");
	p.out = fdopen(out[0], "r");
	CHECK(p.in && p.out);
	return p;
}

static int program_end(struct program *p)
{
	int status;

	if (p->in)
		fclose(p->in);
	fclose(p->out);
	CHECK_EQ(waitpid(p->pid, &status, 0), p->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- our server, in a hive; the program is run by the main thread ---- */

static int serve_one(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
	struct side s = { .context = server_context, .deadline_ns = real_patience() };
	struct hive_tls_info info;
	size_t have = 0;
	int64_t n = 0;

	s.fd = hive_accept(*(int *)arg, real_patience());
	CHECK(s.fd >= 0);
	side_run(&s);
	if (s.result == 0) {
		CHECK_OK(hive_tls_info_read(s.tls, &info));
		strcpy(host_seen, info.host);
		strcpy(version_seen, info.version);
		memset(client_saw, 0, sizeof client_saw);
		while (!strstr(client_saw, "\r\n\r\n") && have < sizeof client_saw - 1 && n >= 0) {
			n = hive_tls_read(s.tls, client_saw + have, sizeof client_saw - 1 - have, real_patience());
			CHECK(n > 0);
			have += (size_t)n;
		}
		CHECK_OK(hive_tls_write_all(s.tls, answer, sizeof answer - 1, real_patience()));
		CHECK_OK(hive_tls_shutdown(s.tls, real_patience()));
		n = hive_tls_read(s.tls, client_saw + have, 1, real_patience());
		CHECK(n == 0 || n == -ENODATA || n == -ECONNRESET);
	}
	hive_tls_destroy(s.tls, HIVE_NOWAIT);
	return s.result;
}

struct stage {
	struct hive *hive;
	struct hive_fiber *fiber;
	int listener;
};

static struct stage stage_begin(int round)
{
	struct stage s = { .hive = net_start(core_names[round % core_count()], 2, 1) };
	struct hive_address address;

	s.listener = hive_listen("127.0.0.1", 0, NULL);
	CHECK(s.listener >= 0);
	CHECK_OK(hive_address_of(s.listener, false, &address));
	port = hive_address_port(&address);
	return s;
}

static int stage_end(struct stage *s)
{
	int result;

	CHECK_OK(hive_fiber_join(s->fiber, real_patience(), &result));
	real_end(s->hive, HIVE_DRAIN);
	CHECK_OK(close(s->listener));
	return result;
}

static const char *all_of(FILE *file)
{
	static char text[4000];
	size_t n = fread(text, 1, sizeof text - 1, file);

	text[n] = 0;
	return text;
}

TEST(openssl_is_the_client)
{
	static const char *const versions[] = { "-tls1_2", "-tls1_3", "-tls1_3" };

	if (!is_there("openssl")) {
		test_skip("there is no openssl command");
		return;
	}
	server_context = context_server("server");
	for (int round = 0; round < 3; round++) {
		struct stage stage = stage_begin(round);
		char address[32], ca[200];
		char *argv[] = { "openssl",
			         "s_client",
			         "-connect",
			         address,
			         "-CAfile",
			         ca,
			         "-verify_return_error",
			         "-quiet",
			         "-servername",
			         round == 2 ? "other.test" : "localhost",
			         "-verify_hostname",
			         round == 2 ? "other.test" : "localhost",
			         (char *)(uintptr_t)versions[round],
			         NULL };
		struct program p;
		int result;

		snprintf(address, sizeof address, "127.0.0.1:%d", port);
		snprintf(ca, sizeof ca, "%s", certs_path("ca.pem"));
		CHECK_OK(hive_spawn(stage.hive, serve_one, &stage.listener, NULL, &stage.fiber));
		p = program_start(argv);
		if (round < 2) {
			fprintf(p.in, "GET /x HTTP/1.0\r\n\r\n");
			fflush(p.in);
			CHECK(strstr(all_of(p.out), "hello"));
		}
		result = program_end(&p);
		CHECK_EQ(stage_end(&stage), round < 2 ? 0 : -EACCES); /* the third one wants another name */
		CHECK_EQ(result == 0, round < 2);
		if (round < 2) {
			CHECK(strstr(client_saw, "GET /x"));
			CHECK_STR(host_seen, "localhost");
			CHECK_STR(version_seen, round ? "TLSv1.3" : "TLSv1.2");
		}
	}
	hive_tls_context_destroy(server_context);
}

TEST(curl_is_the_client)
{
	if (!is_there("curl")) {
		test_skip("there is no curl command");
		return;
	}
	server_context = context_server("server");
	for (int round = 0; round < 4; round++) {
		struct stage stage = stage_begin(round);
		char url[64], ca[200];
		char *argv[] = { "curl", "-sS", "--noproxy", "*", "--max-time", "60", "--cacert", ca, url, NULL };
		struct program p;

		snprintf(url, sizeof url, "https://%s:%d/", round == 1 ? "127.0.0.1" : "localhost", port);
		snprintf(ca, sizeof ca, "%s", certs_path(round == 3 ? "stranger.pem" : "ca.pem"));
		CHECK_OK(hive_spawn(stage.hive, serve_one, &stage.listener, NULL, &stage.fiber));
		p = program_start(argv);
		CHECK_STR(all_of(p.out), round == 3 ? "" : "hello\n");
		CHECK_EQ(program_end(&p), round == 3 ? 60 : 0); /* 60: it does not trust the server */
		CHECK_EQ(stage_end(&stage), round == 3 ? -EACCES : 0);
	}
	hive_tls_context_destroy(server_context);
}

/* ---- our client ---- */

struct call {
	struct hive_tls_context *context;
	const char *host;
	char reversed[16];
};

static int call(void *arg)
{
	struct call *c = arg;
	struct side s = { .context = c->context, .host = c->host, .deadline_ns = real_patience() };

	s.fd = hive_dial("127.0.0.1", port, NULL, real_patience());
	CHECK(s.fd >= 0);
	side_run(&s);
	if (s.result == 0) {
		CHECK_OK(hive_tls_write_all(s.tls, "rophive\n", 8, real_patience()));
		CHECK_OK(hive_tls_read_all(s.tls, c->reversed, 8, real_patience()));
	}
	hive_tls_destroy(s.tls, real_patience());
	return s.result;
}

TEST(openssl_is_the_server)
{
	char pem[200], key[200], line[200];
	char *argv[] = { "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pem,
		         "-key",    key,        "-rev",    "-naccept",    "6",     NULL };
	struct program p;
	unsigned at = 0;

	if (!is_there("openssl")) {
		test_skip("there is no openssl command");
		return;
	}
	certs_make();
	snprintf(pem, sizeof pem, "%s", certs_path("server.pem"));
	snprintf(key, sizeof key, "%s", certs_path("server.key"));
	p = program_start(argv);
	while (at == 0 && fgets(line, sizeof line, p.out))
		sscanf(line, "ACCEPT %*[^:]:%u", &at);
	CHECK(at > 0);
	port = (uint16_t)at;
	for (int round = 0; round < 6; round++) {
		struct hive *hive = net_start(core_names[round % core_count()], 1, 1);
		struct call c = { .context = context_client(), .host = round < 3 ? "localhost" : "example.org" };
		int result;

		CHECK_OK(hive_block_on(hive, call, &c, HIVE_FOREVER, &result));
		CHECK_EQ(result, round < 3 ? 0 : -EKEYREJECTED);
		CHECK_STR(c.reversed, round < 3 ? "evihpor\n" : "");
		real_end(hive, HIVE_DRAIN);
		hive_tls_context_destroy(c.context);
	}
	kill(p.pid, SIGTERM);
	program_end(&p);
}

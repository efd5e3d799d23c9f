/* SPDX-License-Identifier: MIT */
/* What TLS costs here: our server, a fiber for each connection, beside the plain one, a pool of threads that call OpenSSL and block. The same
 * load upon both, from this process, in turns; a fresh server for each turn. Prints a line of JSON for each scenario:
 *
 *     hive-bench-tls [SECONDS a turn, 2] [ROUNDS, 5] [CLIENTS, 16]                                                        */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <rophive/hive.h>
#include <rophive/tls.h>

enum { BLOCK = 64 << 10, CLIENTS_MOST = 256, ROUNDS_MOST = 101 };

static char pem[] = "/tmp/rophive.bench.XXXXXX";
static int clients = 16;
static struct sockaddr_in place;

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "hive-bench-tls: %s failed\n", what);
	unlink(pem);
	_exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- our server ---- */

/* A byte says what the client wants: an answer, or bytes without end. */
static int serve(void *arg)
{
	static const char zeros[BLOCK];
	struct hive_tls **argument = arg, *tls = *argument;
	char wish;

	free(argument);
	if (hive_tls_accept(tls, HIVE_FOREVER) == 0 && hive_tls_read(tls, &wish, 1, HIVE_FOREVER) == 1) {
		if (wish == 'h')
			hive_tls_write_all(tls, "x", 1, HIVE_FOREVER);
		while (wish == 'd' && hive_tls_write(tls, zeros, sizeof zeros, HIVE_FOREVER) > 0)
			;
	}
	hive_tls_destroy(tls, HIVE_NOWAIT);
	return 0;
}

static int listen_on(void *arg)
{
	struct hive_tls_options options = { .server = true, .certificate_file = pem };
	struct hive_tls_context *context;
	int fd;

	if (hive_tls_context_create(&options, &context) < 0)
		give_up("hive_tls_context_create");
	while ((fd = hive_accept(*(int *)arg, HIVE_FOREVER)) >= 0) {
		struct hive_tls **tls = malloc(sizeof(struct hive_tls *));

		if (!tls || hive_tls_create(context, fd, tls) < 0 ||
		    hive_spawn(hive_current(), serve, tls, NULL, NULL) < 0)
			give_up("a connection");
	}
	return fd;
}

static void serve_hive(int listener)
{
	struct hive *hive;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, listen_on, &listener, HIVE_FOREVER, NULL) < 0)
		give_up("hive_runtime_start");
}

/* ---- the plain one ---- */

struct plain {
	SSL_CTX *ctx;
	int listener;
};

static void *serve_plain(void *arg)
{
	static const char zeros[BLOCK];
	struct plain *p = arg;
	int fd, on = 1;

	while ((fd = accept(p->listener, NULL, NULL)) >= 0) {
		SSL *ssl = SSL_new(p->ctx);
		char wish;

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		SSL_set_fd(ssl, fd);
		if (SSL_accept(ssl) == 1 && SSL_read(ssl, &wish, 1) == 1) {
			if (wish == 'h')
				SSL_write(ssl, "x", 1);
			while (wish == 'd' && SSL_write(ssl, zeros, sizeof zeros) > 0)
				;
			SSL_shutdown(ssl);
		}
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

static void serve_threads(int listener)
{
	struct plain p = { SSL_CTX_new(TLS_server_method()), listener };
	pthread_t thread;

	if (!p.ctx || SSL_CTX_use_certificate_chain_file(p.ctx, pem) != 1 ||
	    SSL_CTX_use_PrivateKey_file(p.ctx, pem, SSL_FILETYPE_PEM) != 1)
		give_up("a plain context");
	for (int i = 1; i < clients; i++)
		if (pthread_create(&thread, NULL, serve_plain, &p) != 0)
			give_up("pthread_create");
	serve_plain(&p);
}

/* ---- the load ---- */

struct client {
	pthread_t thread;
	SSL_CTX *ctx;
	char wish;
	double end;
	uint64_t done; /* handshakes, or bytes */
};

static void ask(struct client *c)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, n;
	static _Thread_local char buffer[BLOCK];
	SSL *ssl = SSL_new(c->ctx);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (fd < 0 || connect(fd, (struct sockaddr *)&place, sizeof place) < 0)
		give_up("connect");
	SSL_set_fd(ssl, fd);
	if (SSL_connect(ssl) != 1 || SSL_write(ssl, &c->wish, 1) != 1)
		give_up("SSL_connect");
	while ((n = SSL_read(ssl, buffer, sizeof buffer)) > 0 && c->wish == 'd' && now() < c->end)
		c->done += (uint64_t)n;
	if (n <= 0)
		give_up("SSL_read");
	if (c->wish == 'h')
		c->done++;
	SSL_free(ssl);
	close(fd);
}

static void *client_run(void *arg)
{
	struct client *c = arg;

	while (now() < c->end)
		ask(c);
	return NULL;
}

struct turn {
	double rate, cpu; /* a second; microseconds of the server for each */
};

static double load_for(double seconds, char wish)
{
	struct client crowd[CLIENTS_MOST];
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int count = wish == 'd' ? 4 : clients;
	double began = now();
	uint64_t done = 0;

	for (int i = 0; i < count; i++) {
		crowd[i] = (struct client){ .ctx = ctx, .wish = wish, .end = began + seconds };
		if (pthread_create(&crowd[i].thread, NULL, client_run, &crowd[i]) != 0)
			give_up("pthread_create");
	}
	for (int i = 0; i < count; i++) {
		pthread_join(crowd[i].thread, NULL);
		done += crowd[i].done;
	}
	SSL_CTX_free(ctx);
	return (double)done / (now() - began);
}

static struct turn take_turn(void (*server)(int), double seconds, char wish)
{
	socklen_t bytes = sizeof place;
	int status, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rusage used;
	struct turn t;
	pid_t pid;

	place = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (struct sockaddr *)&place, sizeof place) < 0 || listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&place, &bytes) < 0 || (pid = fork()) < 0)
		give_up("a listener");
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		server(listener);
		_exit(1);
	}
	t.rate = load_for(seconds, wish);
	kill(pid, SIGKILL);
	if (wait4(pid, &status, 0, &used) != pid || !WIFSIGNALED(status))
		give_up("the server");
	close(listener);
	t.cpu = ((double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
	         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec)) /
	        (t.rate * seconds);
	return t;
}

/* ---- turns ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(const double *values, int n)
{
	double sorted[ROUNDS_MOST];

	memcpy(sorted, values, (size_t)n * sizeof *values);
	qsort(sorted, (size_t)n, sizeof *sorted, by_size);
	return sorted[n / 2];
}

static void measure(const char *name, char wish, double unit, double seconds, int rounds)
{
	double ours[ROUNDS_MOST], plain[ROUNDS_MOST], ratio[ROUNDS_MOST], cpu[ROUNDS_MOST];

	for (int i = 0; i < rounds; i++) {
		struct turn first = take_turn(i % 2 ? serve_threads : serve_hive, seconds, wish);
		struct turn second = take_turn(i % 2 ? serve_hive : serve_threads, seconds, wish);
		struct turn us = i % 2 ? second : first, them = i % 2 ? first : second;

		ours[i] = us.rate / unit;
		plain[i] = them.rate / unit;
		ratio[i] = us.rate / them.rate;
		cpu[i] = us.cpu / them.cpu;
	}
	printf("{\"scenario\":\"%s\",\"rounds\":%d,\"seconds\":%g,\"clients\":%d,\"rophive_per_s\":%.1f,\"threads_per_s\":%.1f,"
	       "\"ratio\":%.3f,\"cpu_ratio\":%.3f}\n",
	       name, rounds, seconds, wish == 'd' ? 4 : clients, median(ours, rounds), median(plain, rounds),
	       median(ratio, rounds), median(cpu, rounds));
	fflush(stdout);
}

static void make_certificate(EVP_PKEY *key)
{
	X509 *x509 = X509_new();
	FILE *file = fopen(pem, "w");

	X509_gmtime_adj(X509_getm_notBefore(x509), 0);
	X509_gmtime_adj(X509_getm_notAfter(x509), 24 * 3600);
	X509_set_pubkey(x509, key);
	if (!file || X509_sign(x509, key, EVP_sha256()) <= 0 || PEM_write_X509(file, x509) != 1 ||
	    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) != 1 || fclose(file) != 0)
		give_up("a certificate");
	X509_free(x509);
	EVP_PKEY_free(key);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	int rounds = argc > 2 ? atoi(argv[2]) : 5, fd;

	clients = argc > 3 ? atoi(argv[3]) : clients;
	if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MOST || clients < 1 || clients > CLIENTS_MOST) {
		fprintf(stderr, "usage: hive-bench-tls [SECONDS] [ROUNDS 1..%d] [CLIENTS 1..%d]\n", ROUNDS_MOST,
		        CLIENTS_MOST);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	fd = mkstemp(pem);
	if (fd < 0)
		give_up("mkstemp");
	close(fd);
	make_certificate(EVP_EC_gen("P-256"));
	measure("tls_handshake_p256", 'h', 1, seconds, rounds);
	measure("tls_stream_mb", 'd', 1e6, seconds, rounds);
	make_certificate(EVP_RSA_gen(2048));
	measure("tls_handshake_rsa2048", 'h', 1, seconds, rounds);
	unlink(pem);
	return 0;
}

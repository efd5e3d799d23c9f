/* SPDX-License-Identifier: MIT */
#include "terminal_modes.h"
#include "terminal.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Signals know no arguments, so this state belongs to the process: there is one terminal, too. */
static struct termios before;
static volatile sig_atomic_t modes_entered, keys_taken, interrupted, exit_code;

static void write_all(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return; /* the terminal is gone: nothing to put back */
}

static void take_keys(void)
{
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &before) != 0)
		return;
	struct termios quiet = before;
	quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
	quiet.c_cc[VMIN] = 0;
	quiet.c_cc[VTIME] = 0;
	keys_taken = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
}

void terminal_modes_enter(void)
{
	if (modes_entered)
		return;
	modes_entered = 1;
	take_keys();
	write_all("\x1b[?1049h\x1b[?25l\x1b[2J");
}

/* Also in signal handlers: only calls that are allowed there. */
void terminal_modes_leave(void)
{
	if (!modes_entered)
		return;
	modes_entered = 0;
	write_all("\x1b[0m\x1b[?2026l\x1b[?25h\x1b[?1049l");
	if (keys_taken)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	keys_taken = 0;
}

static void on_interrupt(int signal_number)
{
	int saved = errno;
	if (interrupted) { /* asked twice: whatever should have ended us hangs */
		terminal_modes_leave();
		_exit(128 + signal_number);
	}
	exit_code = 128 + signal_number;
	interrupted = 1;
	errno = saved;
}

static void on_crash(int signal_number)
{
	terminal_modes_leave();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void terminal_catch_signals(void)
{
	struct sigaction interrupt = { .sa_handler = on_interrupt };
	struct sigaction crash = { .sa_handler = on_crash };
	const int interrupts[] = { SIGINT, SIGTERM, SIGHUP }, crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
		sigaction(interrupts[i], &interrupt, NULL);
	for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
		sigaction(crashes[i], &crash, NULL);
	signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of write, not our end */
}

bool terminal_interrupted(void)
{
	return interrupted;
}

int terminal_exit_code(void)
{
	return exit_code;
}

bool terminal_read_keys(void)
{
	char keys[64];
	ssize_t count = keys_taken ? read(STDIN_FILENO, keys, sizeof keys) : 0;
	if (count > 0 && (memchr(keys, 'q', (size_t)count) || memchr(keys, 'Q', (size_t)count)))
		interrupted = 1;
	return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

/* SPDX-License-Identifier: MIT */
/* Letters to a worker: R-53 …. */
#include "queue/inbox.h"

#include "unit.h"

struct note {
	struct letter letter; /* first */
	uint32_t poster, number;
};

static struct inbox inbox;

static uint32_t number_at(const struct letter *letter)
{
	return ((const struct note *)letter)->number;
}

static uint32_t length(const struct letter *letters)
{
	uint32_t n = 0;

	for (; letters; letters = letters->next)
		n++;
	return n;
}

TEST(new_inbox_is_open_and_empty)
{
	inbox_init(&inbox);
	CHECK(inbox_is_empty(&inbox));
	CHECK(inbox_take(&inbox) == NULL);
}

TEST(one_letter_comes_out_once)
{
	struct note note = { .number = 7 };

	inbox_init(&inbox);
	CHECK(inbox_push(&inbox, &note.letter));
	CHECK(!inbox_is_empty(&inbox));
	CHECK(inbox_take(&inbox) == &note.letter);
	CHECK(note.letter.next == NULL);
	CHECK(inbox_is_empty(&inbox));
	CHECK(inbox_take(&inbox) == NULL);
}

TEST(letters_come_out_in_posting_order)
{
	struct note notes[100];
	struct letter *letter;
	uint32_t expected = 0;

	inbox_init(&inbox);
	for (uint32_t i = 0; i < 100; i++) {
		notes[i].number = i;
		CHECK(inbox_push(&inbox, &notes[i].letter));
	}
	for (letter = inbox_take(&inbox); letter; letter = letter->next)
		CHECK_EQ(number_at(letter), expected++);
	CHECK_EQ(expected, 100);
}

TEST(taking_takes_all_of_the_moment_and_later_ones_wait)
{
	struct note notes[4] = { 0 };

	inbox_init(&inbox);
	for (int i = 0; i < 3; i++)
		CHECK(inbox_push(&inbox, &notes[i].letter));
	CHECK_EQ(length(inbox_take(&inbox)), 3);
	CHECK(inbox_push(&inbox, &notes[3].letter));
	CHECK(inbox_take(&inbox) == &notes[3].letter);
}

TEST(letter_can_be_posted_again_after_it_was_taken)
{
	struct note note = { 0 };

	inbox_init(&inbox);
	for (int i = 0; i < 5; i++) {
		CHECK(inbox_push(&inbox, &note.letter));
		CHECK(inbox_take(&inbox) == &note.letter);
	}
}

TEST(close_gives_the_rest_in_order)
{
	struct note a = { .number = 1 }, b = { .number = 2 };
	struct letter *rest;

	inbox_init(&inbox);
	CHECK(inbox_push(&inbox, &a.letter));
	CHECK(inbox_push(&inbox, &b.letter));
	rest = inbox_close(&inbox);
	CHECK(rest == &a.letter && rest->next == &b.letter && b.letter.next == NULL);
}

TEST(closed_inbox_refuses_and_is_empty)
{
	struct note note = { 0 };

	inbox_init(&inbox);
	CHECK(inbox_close(&inbox) == NULL);
	CHECK(!inbox_push(&inbox, &note.letter));
	CHECK(!inbox_push(&inbox, &note.letter));
	CHECK(inbox_is_empty(&inbox));
}

TEST(closing_twice_gives_nothing_the_second_time)
{
	struct note note = { 0 };

	inbox_init(&inbox);
	CHECK(inbox_push(&inbox, &note.letter));
	CHECK(inbox_close(&inbox) == &note.letter);
	CHECK(inbox_close(&inbox) == NULL);
	CHECK(!inbox_push(&inbox, &note.letter));
}

TEST(reopened_inbox_takes_letters_again)
{
	struct note note = { 0 };

	inbox_init(&inbox);
	inbox_close(&inbox);
	inbox_open(&inbox);
	CHECK(inbox_is_empty(&inbox));
	CHECK(inbox_push(&inbox, &note.letter));
	CHECK(inbox_take(&inbox) == &note.letter);
}

TEST(chain_of_none_and_of_one_is_in_order)
{
	struct letter only = { NULL };

	CHECK(letters_in_order(NULL) == NULL);
	CHECK(letters_in_order(&only) == &only && only.next == NULL);
}

/* ---- threads ---- */

enum { POSTERS = 4 };

struct mail {
	struct note *notes[POSTERS];
	uint32_t each;
	uint32_t next[POSTERS]; /* of the reader: which number must come from whom */
	_Atomic(int) posting;
	_Atomic(uint32_t) refused;
	uint32_t read;
};

static void mail_init(struct mail *m, uint32_t each)
{
	*m = (struct mail){ .each = each };
	atomic_init(&m->posting, POSTERS);
	for (uint32_t p = 0; p < POSTERS; p++) {
		m->notes[p] = calloc(each, sizeof *m->notes[p]);
		CHECK(m->notes[p]);
		for (uint32_t i = 0; i < each; i++)
			m->notes[p][i] = (struct note){ .poster = p, .number = i };
	}
	inbox_init(&inbox);
}

static void mail_end(struct mail *m)
{
	for (int p = 0; p < POSTERS; p++)
		free(m->notes[p]);
}

static void mail_read(struct mail *m, struct letter *letters)
{
	while (letters) {
		struct note *note = (struct note *)letters;

		letters = letters->next;
		CHECK_EQ(note->number, m->next[note->poster]);
		m->next[note->poster]++;
		m->read++;
	}
}

static void post_and_read(int index, void *arg)
{
	struct mail *m = arg;

	if (index == POSTERS) {
		while (atomic_load(&m->posting) > 0) {
			mail_read(m, inbox_take(&inbox));
			breathe();
		}
		mail_read(m, inbox_take(&inbox));
		return;
	}
	for (uint32_t i = 0; i < m->each; i++)
		CHECK(inbox_push(&inbox, &m->notes[index][i].letter));
	atomic_fetch_sub(&m->posting, 1);
}

TEST(four_posters_lose_and_double_nothing)
{
	struct mail mail;

	mail_init(&mail, (uint32_t)rounds(40000));
	crew_run(POSTERS + 1, post_and_read, &mail);
	CHECK_EQ(mail.read, POSTERS * mail.each);
	mail_end(&mail);
}

/* The owner closes in the middle: each letter was read, or its poster was told. */
static void post_until_refused(int index, void *arg)
{
	struct mail *m = arg;

	if (index == POSTERS) {
		while (m->read < m->each) {
			mail_read(m, inbox_take(&inbox));
			breathe();
		}
		mail_read(m, inbox_close(&inbox));
		return;
	}
	for (uint32_t i = 0; i < m->each; i++) {
		if (inbox_push(&inbox, &m->notes[index][i].letter))
			continue;
		atomic_fetch_add(&m->refused, m->each - i);
		CHECK(!inbox_push(&inbox, &m->notes[index][i].letter));
		break;
	}
}

TEST(close_under_fire_accounts_for_every_letter)
{
	for (int i = 0; i < 5; i++) {
		struct mail mail;

		mail_init(&mail, (uint32_t)rounds(5000));
		crew_run(POSTERS + 1, post_until_refused, &mail);
		CHECK_EQ(mail.read + atomic_load(&mail.refused), POSTERS * mail.each);
		mail_end(&mail);
	}
}

/* An owner that leaves and comes back while posters are at it. */
static void post_patiently(int index, void *arg)
{
	struct mail *m = arg;

	if (index == POSTERS) {
		while (atomic_load(&m->posting) > 0) {
			mail_read(m, inbox_close(&inbox));
			inbox_open(&inbox);
			mail_read(m, inbox_take(&inbox));
			breathe();
		}
		mail_read(m, inbox_take(&inbox));
		return;
	}
	for (uint32_t i = 0; i < m->each; i++)
		while (!inbox_push(&inbox, &m->notes[index][i].letter))
			breathe();
	atomic_fetch_sub(&m->posting, 1);
}

TEST(reopening_under_fire_loses_nothing)
{
	struct mail mail;

	mail_init(&mail, (uint32_t)rounds(10000));
	crew_run(POSTERS + 1, post_patiently, &mail);
	CHECK_EQ(mail.read, POSTERS * mail.each);
	mail_end(&mail);
}

/* SPDX-License-Identifier: MIT */
#pragma once
/* The verbs of base/atomic.h for the model checker. Each use of a verb stronger than relaxed is a site with a name
 * ("deque_pop exchange_seq &d->bottom") and an order that can be weakened while the program runs: that is how the
 * mutants are made, without a second compilation and without a word in the code under test.                        */
#include "model_relacy.h"

enum model_kind { MODEL_LOAD, MODEL_STORE, MODEL_CHANGE };

struct model_site {
	const char *file, *function, *verb, *object;
	int line;
	enum model_kind kind;
	rl::memory_order order, failure; /* failure: of a compare-and-swap */
	bool reached;                    /* since somebody cleared it */
	model_site *next;

	static model_site *&first()
	{
		static model_site *sites;
		return sites;
	}

	/* The mutant: which site, and its order. */
	static const char *&mutant()
	{
		static const char *name;
		return name;
	}
	static rl::memory_order &mutant_order()
	{
		static rl::memory_order order;
		return order;
	}

	/* "queue/deque.h:93 exchange_seq &d->bottom" */
	void print_name(char *ret_name, size_t bytes) const
	{
		const char *folder = strrchr(file, '/');

		while (folder > file && folder[-1] != '/')
			folder--;
		snprintf(ret_name, bytes, "%s:%d %s %s", folder, line, verb, object);
	}

	model_site(const char *at, int l, const char *f, const char *v, const char *o, model_kind k, rl::memory_order m,
	           rl::memory_order fail)
	    : file(at), function(f), verb(v), object(o), line(l), kind(k), order(m), failure(fail), reached(true),
	      next(first())
	{
		char name[300];

		first() = this;
		print_name(name, sizeof name);
		if (!mutant() || strcmp(name, mutant()) != 0)
			return;
		order = mutant_order();
		if (order == rl::mo_relaxed || order == rl::mo_release)
			failure = rl::mo_relaxed;
		else if (failure == rl::mo_seq_cst)
			failure = rl::mo_acquire;
	}
};

#define MODEL_SITE(verb, p, kind, order, failure)                                                             \
	({                                                                                                    \
		static model_site site(__FILE__, __LINE__, __func__, #verb, #p, MODEL_##kind, rl::mo_##order, \
		                       rl::mo_##failure);                                                     \
		site.reached = true;                                                                          \
		&site;                                                                                        \
	})

template <typename T>
bool model_cas(rl::atomic<T> *p, T *expected, T value, const model_site *site, rl::debug_info_param info)
{
	return p->compare_exchange_strong(*expected, value, site->order, info, site->failure, info);
}

/* The value's type is that of the atomic: integer literals and enumerators convert as in C. */
template <typename T> struct model_same {
	typedef T type;
};

template <typename T>
bool model_cas_to(rl::atomic<T> *p, T *expected, typename model_same<T>::type value, const model_site *site,
                  rl::debug_info_param info)
{
	return model_cas<T>(p, expected, value, site, info);
}

#define ATOMIC(T) rl::atomic<T>

#define load_hint(p) load_relaxed(p)
#define load_relaxed(p) (p)->load(rl::mo_relaxed, $)
#define load_acquire(p) (p)->load(MODEL_SITE(load_acquire, p, LOAD, acquire, relaxed)->order, $)
#define load_seq(p) (p)->load(MODEL_SITE(load_seq, p, LOAD, seq_cst, relaxed)->order, $)

#define store_relaxed(p, v) (p)->store((v), rl::mo_relaxed, $)
#define store_release(p, v) (p)->store((v), MODEL_SITE(store_release, p, STORE, release, relaxed)->order, $)
#define store_seq(p, v) (p)->store((v), MODEL_SITE(store_seq, p, STORE, seq_cst, relaxed)->order, $)

#define MODEL_CHANGE(method, verb, p, v, strength) \
	(p)->method((v), MODEL_SITE(verb, p, CHANGE, strength, relaxed)->order, $)
#define exchange_acquire(p, v) MODEL_CHANGE(exchange, exchange_acquire, p, v, acquire)
#define exchange_release(p, v) MODEL_CHANGE(exchange, exchange_release, p, v, release)
#define exchange_seq(p, v) MODEL_CHANGE(exchange, exchange_seq, p, v, seq_cst)
#define add_relaxed(p, v) (p)->fetch_add((v), rl::mo_relaxed, $)
#define add_release(p, v) MODEL_CHANGE(fetch_add, add_release, p, v, release)
#define add_seq(p, v) MODEL_CHANGE(fetch_add, add_seq, p, v, seq_cst)
#define sub_relaxed(p, v) (p)->fetch_sub((v), rl::mo_relaxed, $)
#define sub_release(p, v) MODEL_CHANGE(fetch_sub, sub_release, p, v, release)
#define sub_seq(p, v) MODEL_CHANGE(fetch_sub, sub_seq, p, v, seq_cst)
#define sub_acq_rel(p, v) MODEL_CHANGE(fetch_sub, sub_acq_rel, p, v, acq_rel)
#define or_relaxed(p, v) (p)->fetch_or((v), rl::mo_relaxed, $)
#define or_acquire(p, v) MODEL_CHANGE(fetch_or, or_acquire, p, v, acquire)
#define or_release(p, v) MODEL_CHANGE(fetch_or, or_release, p, v, release)
#define or_acq_rel(p, v) MODEL_CHANGE(fetch_or, or_acq_rel, p, v, acq_rel)
#define or_seq(p, v) MODEL_CHANGE(fetch_or, or_seq, p, v, seq_cst)
#define and_relaxed(p, v) (p)->fetch_and((v), rl::mo_relaxed, $)
#define and_acquire(p, v) MODEL_CHANGE(fetch_and, and_acquire, p, v, acquire)
#define and_release(p, v) MODEL_CHANGE(fetch_and, and_release, p, v, release)
#define and_acq_rel(p, v) MODEL_CHANGE(fetch_and, and_acq_rel, p, v, acq_rel)
#define and_seq(p, v) MODEL_CHANGE(fetch_and, and_seq, p, v, seq_cst)

#define MODEL_CAS(verb, p, expected, v, order, failure) \
	model_cas_to((p), (expected), (v), MODEL_SITE(verb, p, CHANGE, order, failure), $)
#define exchange_relaxed(p, v) (p)->exchange((v), rl::mo_relaxed, $)
#define cas_relaxed(p, expected, v) (p)->compare_exchange_strong(*(expected), (v), rl::mo_relaxed, $)
#define cas_acquire(p, expected, v) MODEL_CAS(cas_acquire, p, expected, v, acquire, relaxed)
#define cas_release(p, expected, v) MODEL_CAS(cas_release, p, expected, v, release, relaxed)
#define cas_acq_rel(p, expected, v) MODEL_CAS(cas_acq_rel, p, expected, v, acq_rel, acquire)
#define cas_seq(p, expected, v) MODEL_CAS(cas_seq, p, expected, v, seq_cst, seq_cst)

/* SPDX-License-Identifier: MIT */
#pragma once
/* A small generator for choices of victims and places: splitmix64. One state per worker, no lock, no global. */
#include <stdint.h>

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t rng_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return rng_mix(*state);
}

/* A number below n (n > 0) from 64 random bits; the bias is below 2^-32 for the sizes used here. */
static inline uint32_t rng_below(uint64_t random, uint32_t n)
{
	return (uint32_t)(((random >> 32) * n) >> 32);
}

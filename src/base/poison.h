/* SPDX-License-Identifier: MIT */
#pragma once
/* Memory that nobody may touch for a while: AddressSanitizer reports who does. Nothing in other builds. */
#if !defined(__has_feature) /* gcc */
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define POISONS 1
#define POISON(at, bytes) __asan_poison_memory_region(at, bytes)
#define UNPOISON(at, bytes) __asan_unpoison_memory_region(at, bytes)
#define IS_POISONED(at) (__asan_address_is_poisoned(at) != 0)
#else
#define POISONS 0
#define POISON(at, bytes) ((void)(at), (void)(bytes))
#define UNPOISON(at, bytes) ((void)(at), (void)(bytes))
#define IS_POISONED(at) (-1) /* who knows */
#endif

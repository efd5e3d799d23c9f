/* SPDX-License-Identifier: MIT */
#pragma once
/* What strands and graphs share: guests of either kind. */
#include "sched/guest.h"

/* Any thread. Something that has guests in this hive may be made. 0, or -EINVAL, -EOWNERDEAD, -ESHUTDOWN, -ESRCH (no IO worker),
 * -ENOTSUP (no compute worker).                                                                                          */
int hive__group_admit(struct hive *hive, enum hive_kind kind);
/* Any thread. From here on what has not begun must not. */
bool hive__group_is_leaving(struct hive *hive);
/* Any thread; the caller holds. On a worker of the kind; where that is not to be had, on any. Cannot fail. */
void hive__group_ready(struct hive *hive, struct guest *guest, enum hive_kind kind);
/* A worker; the caller holds. The same for one that runs here and lets others have a turn. */
void hive__group_again(struct hive *hive, struct guest *guest, enum hive_kind kind);
/* A worker that runs the guest. True: it is of the other kind, and went there. */
bool hive__group_goes_on(struct hive *hive, struct guest *guest, enum hive_kind kind);

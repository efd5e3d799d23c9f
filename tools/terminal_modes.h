/* SPDX-License-Identifier: MIT */
#pragma once

/* The state that outlives a program that forgets to put it back: screen, cursor, echo. Both may be called twice. */
void terminal_modes_enter(void);
void terminal_modes_leave(void);

/* SPDX-License-Identifier: MIT */
#pragma once
/* Stands before everything else in all files of the explorer, the library's too (cmake/tests.cmake, tests/explore/run): every shared
 * access is a point; what is full is so soon, and indices begin just before their wrap; whoever spins does so once.           */
#define HIVE_EXPLORE 1
#define LOCK_SPINS 1
#define LATCH_SPINS 1
#define TUNE_BACKOFF_MOST 8
#define PASSED_LIMIT 1
#define CHECKPOINTS 1
#define LANE_CAPACITY 4
#define POOL_LANES 4
#define POOL_PROBES 2
#define CHUNK_TASKS 4
#define LINE_TASKS 2
#define GRAPH_NODES_MAX 6
#define GRAPH_EDGES_MAX 10
#define TUNE_FORKS 4
#define PATIENT_LOOKS 1
#define TUNE_MESH 2
#define TUNE_MESH_LANES 8
#define MESH_LANES 3
#define MESH_PATIENCE 1
#define MESH_START 0x7ffffffffffffffe
#define LANE_START 0x7ffffffffffffffe
#define DEQUE_START 0xfffffffffffffffe

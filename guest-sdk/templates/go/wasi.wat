;; What Go's runtime asks of WASI, answered inside the component: a policy has no clock, no randomness, no files and no
;; arguments. Each call begins in a fresh instance, so that equal questions get equal answers.
(module
  (import "env" "memory" (memory 0))
  ;; Nanoseconds of a clock that only says what came after what: the runtime refuses one that stands at zero.
  (global $now (mut i64) (i64.const 1000000000))
  (func (export "sched_yield") (result i32) i32.const 0)
  (func (export "proc_exit") (param i32) unreachable)
  (func (export "args_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "args_sizes_get") (param i32 i32) (result i32)
    (i32.store (local.get 0) (i32.const 0))
    (i32.store (local.get 1) (i32.const 0))
    i32.const 0)
  (func (export "environ_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "environ_sizes_get") (param i32 i32) (result i32)
    (i32.store (local.get 0) (i32.const 0))
    (i32.store (local.get 1) (i32.const 0))
    i32.const 0)
  (func (export "clock_time_get") (param i32 i64 i32) (result i32)
    (global.set $now (i64.add (global.get $now) (i64.const 1000)))
    (i64.store (local.get 2) (global.get $now))
    i32.const 0)
  ;; Nobody guesses the hashes of a table of offerings: the seed may be known.
  (func (export "random_get") (param i32 i32) (result i32)
    (memory.fill (local.get 0) (i32.const 42) (local.get 1))
    i32.const 0)
  ;; Bad descriptor: what a panic prints before it ends the call is not heard.
  (func (export "fd_write") (param i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "fd_read") (param i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "fd_close") (param i32) (result i32) i32.const 8)
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) i32.const 8)
  (func (export "fd_fdstat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_prestat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) i32.const 8)
  ;; Nothing to wait for: whoever sleeps has no business in a policy.
  (func (export "poll_oneoff") (param i32 i32 i32 i32) (result i32) unreachable)
)

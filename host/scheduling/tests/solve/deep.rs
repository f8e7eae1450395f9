//! How much is tried: a suite of every day, which is built without optimising, answers in seconds; `just deep` and CI,
//! which optimise, try all of it.

/// So many worlds or pods, or those of every day.
pub(crate) fn deep<T>(all: T, every_day: T) -> T {
    if cfg!(debug_assertions) {
        every_day
    } else {
        all
    }
}

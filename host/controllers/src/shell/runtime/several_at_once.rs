//! Work of which several parts are at it at one time.
//!
//! How many is always said, so that it never grows with the cluster. Answers to client-go's `ParallelizeUntil`.

use futures::stream::{self, StreamExt};

/// Does all of the work, so many parts of it at one time.
pub(crate) async fn several_at_once(
    at_once: usize,
    work: impl Iterator<Item = impl Future<Output = ()>>,
) {
    // Collected, or the futures would borrow from what makes them.
    let work: Vec<_> = work.collect();
    let done = stream::iter(work).buffered(at_once);
    done.for_each(|()| async {}).await;
}

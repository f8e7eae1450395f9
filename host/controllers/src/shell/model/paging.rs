//! Lists of the API server, read a page at a time.
//!
//! A list that is read whole is there three times while it is parsed: as the answer's pieces, as its text and as
//! objects. What is kept of a page is up to the caller, so that a look at a large cluster stays small.

use std::fmt::Debug;

use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

/// Objects a page: a NodeClaim may name six hundred instance types.
const PAGE_SIZE: u32 = 50;

/// Hands every object that bears the labels to `each`; an empty selector is borne by all.
///
/// All pages tell of one moment. A list that takes too long for that ends in an error, as it does when a page
/// cannot be had, and `each` has then seen only a part.
pub async fn for_each_listed<K>(
    api: &Api<K>,
    labels: &str,
    mut each: impl FnMut(K),
) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut params = ListParams::default().limit(PAGE_SIZE);
    if !labels.is_empty() {
        params = params.labels(labels);
    }
    loop {
        let page = api.list(&params).await?;
        page.items.into_iter().for_each(&mut each);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(());
        }
    }
}

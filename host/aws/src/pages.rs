//! Reads every page of a listing.
//!
//! A macro, because the SDK gives each listing its own input type. Part of a listing is never taken for the whole.
//! Answers to the paginators of the AWS SDK for Go that Karpenter uses.

/// Evaluates to `Result<Vec<Item>, CloudProviderError>`: the items of all pages of one operation.
macro_rules! all_pages {
    ($api:expr, $operation:ident, $what:literal, $items:ident, $input:expr) => {{
        let mut items = Vec::new();
        let all = $crate::pages::each_item!($api, $operation, $what, $items, $input, |item| {
            items.push(item);
        });
        all.map(|()| items)
    }};
}

/// Evaluates to `Result<(), CloudProviderError>`: whether every item of every page was taken. Of what is long and of
/// which little is kept, no more than a page is held at a time.
macro_rules! each_item {
    ($api:expr, $operation:ident, $what:literal, $items:ident, $input:expr, |$item:ident| $take:expr) => {
        $crate::pages::each_item_as_told!($api, $operation, $items, $input, |$item| $take)
            .map_err(|error| $crate::error::call_failure($what, &error))
    };
}

/// The same with the error as AWS told it, for who has to tell kinds of errors apart: `ApiResult<()>`.
macro_rules! each_item_as_told {
    ($api:expr, $operation:ident, $items:ident, $input:expr, |$item:ident| $take:expr) => {{
        let mut next_token: Option<String> = None;
        loop {
            let builder = $input.set_next_token(next_token);
            let input = builder.build().map_err($crate::error::unbuilt);
            let page = match input {
                Err(error) => break Err(error),
                Ok(input) => $api.$operation(input).await,
            };
            match page {
                Err(error) => break Err(error),
                Ok(page) => {
                    for $item in page.$items.unwrap_or_default() {
                        $take
                    }
                    next_token = page.next_token.filter(|token| !token.is_empty());
                    if next_token.is_none() {
                        break Ok(());
                    }
                }
            }
        }
    }};
}

pub(crate) use {all_pages, each_item, each_item_as_told};

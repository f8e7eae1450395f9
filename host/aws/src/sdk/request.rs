//! How a request of the seam becomes one of the SDK, and its failure one of the seam.
//!
//! Never repeats a request, and leaves the meaning of codes to [`crate::error`].

use crate::seam::ApiError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// The service's refusal in its own words, or that none answered.
pub(super) fn api_error<E>(error: &SdkError<E, HttpResponse>) -> ApiError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let Some(service) = error.as_service_error() else {
        let chain = aws_smithy_types::error::display::DisplayErrorContext(error);
        return ApiError::unanswered(chain.to_string());
    };
    let is_server = error
        .raw_response()
        .is_some_and(|response| response.status().is_server_error());
    let code = service.code().unwrap_or("Unknown");
    let message = service.message().unwrap_or_default();
    if is_server {
        ApiError::server(code, message)
    } else {
        ApiError::client(code, message)
    }
}

/// Hands every listed field of `$input` to the setter of the same name and sends the request.
macro_rules! send {
    ($client:expr, $operation:ident, $input:ident, [$($setter:ident = $field:ident),+ $(,)?]) => {
        $client
            .$operation()
            $(.$setter($input.$field))+
            .send()
            .await
            .map_err(|error| $crate::sdk::request::api_error(&error))
    };
}

/// Sends a request that changes something for as long as changes may be sent, boxed, as some are large.
macro_rules! send_change {
    ($fence:expr, $effect:expr, $client:expr, $operation:ident, $input:ident, $fields:tt) => {{
        let effect = $effect;
        let call = async { $crate::sdk::request::send!($client, $operation, $input, $fields) };
        Box::pin($fence.fence(effect, call)).await
    }};
}

pub(super) use {send, send_change};

//! The kind `http`: one request to another service, which does the work.

mod body;
mod exchange;
mod expect;
mod headers;
mod kept;
mod params;
mod target;
#[cfg(feature = "tls")]
mod tls;
mod trace;
mod transport;

use std::future::pending;
use std::time::Duration;

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, InvalidHeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::{Method, Request, StatusCode};

use crate::config::show_duration;
use crate::job::{Job, JobContext, JobError};
use exchange::{Reply, exchange};
use kept::Kept;
pub use params::HttpParams;

/// Sends a request.
///
/// Its headers name the run: the idempotency key, the fence, the instant. An expected status is success.
/// No answer, or a status that may change later (408, 409, 425, 429, 5xx), means "retry". Any other status
/// means "fail". The ledger keeps the beginning of the answer.
#[derive(Clone, Debug)]
pub struct Http {
    params: HttpParams,
}

impl Http {
    /// A request as `params` describe it. Opens no connection yet.
    #[must_use]
    pub fn new(params: HttpParams) -> Self {
        Self { params }
    }

    fn request(&self, ctx: &JobContext) -> Result<Request<String>, InvalidHeaderValue> {
        let HttpParams { method, target, headers, body, .. } = &self.params;
        let text = body.as_ref().map_or_else(String::new, |body| body.text.clone());
        let empty = text.is_empty();
        let mut request = Request::new(text);
        *request.method_mut() = method.clone();
        *request.uri_mut() = target.path.clone();
        *request.headers_mut() = headers.of_run(body.as_ref().map(|body| &body.media_type), ctx)?;
        request.headers_mut().insert(HOST, target.authority.clone());
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        if empty && matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
            // Without a length, some receivers wait for a body or refuse the request.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(request)
    }

    fn verdict(&self, answer: &Reply) -> Result<(), JobError> {
        let status = answer.status();
        if self.params.expect_status.holds(status) {
            return Ok(());
        }
        let said = format!("{} answered {status}", self.params.target);
        if status.is_redirection() {
            let to = answer.header(LOCATION).and_then(|location| self.params.target.origin_of(location));
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            return Err(JobError::fail(format!("{said}: a redirect{to}, which is not followed")));
        }
        if !may_change_later(status) {
            return Err(JobError::fail(said));
        }
        match answer.header(RETRY_AFTER).filter(|text| text.len() <= 40) {
            Some(when) => Err(JobError::retry(format!("{said}, retry after {when}"))),
            None => Err(JobError::retry(said)),
        }
    }
}

/// Whether the same request may get another answer later. A receiver answers 409 while it still works on
/// another request with the same idempotency key.
fn may_change_later(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

impl Job for Http {
    /// # Cancel safety
    /// Dropping the future closes the connection, as a cancellation does. The receiver may or may not have
    /// done the work.
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.is_cancelled() {
            return Err(JobError::retry("asked to stop before the request was sent"));
        }
        let request = self.request(ctx).map_err(JobError::fail)?;
        let mut output = HttpOutput { kept: Kept::new(self.params.output_limit.bytes()), ctx };
        let licence = ctx.licence();
        tokio::select! {
            // An answer that has arrived counts, even if the run is stopped at the same moment.
            biased;
            answer = exchange(&self.params, request, &licence, &mut output.kept) => {
                self.verdict(&answer.map_err(JobError::retry)?)
            }
            cause = ctx.cancelled() => {
                Err(JobError::retry(format!("asked to stop ({cause}) before the answer came")))
            }
            late = time_out(self.params.timeout) => {
                let target = &self.params.target;
                Err(JobError::retry(format!("no complete answer from {target} within {}", show_duration(late))))
            }
        }
    }
}

/// Ends after `timeout`. Without one it never ends, and only the run's own timeout applies.
async fn time_out(timeout: Option<Duration>) -> Duration {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout).await;
            timeout
        }
        None => pending().await,
    }
}

/// Stores the answer in the run's context, however the run ends, also when it is dropped.
struct HttpOutput<'a> {
    kept: Kept,
    ctx: &'a JobContext,
}

impl Drop for HttpOutput<'_> {
    fn drop(&mut self) {
        if let Some(text) = self.kept.text() {
            self.ctx.leave(text);
        }
    }
}

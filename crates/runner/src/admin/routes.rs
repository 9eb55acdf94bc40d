//! The three routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::metrics::Metrics;
use super::readiness::Readiness;

/// What the answers are made from.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) readiness: Readiness,
    pub(super) metrics: Metrics,
}

/// All routes.
pub(super) fn routes(sources: Arc<Sources>) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(async || text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"))
        .with_state(sources)
}

/// The process is alive, because it can answer. It checks nothing else: whoever calls this restarts the
/// process when the answer is bad.
async fn health() -> Response {
    text(StatusCode::OK, "alive\n")
}

async fn ready(State(sources): State<Arc<Sources>>) -> Response {
    let missing = sources.readiness.missing();
    if missing.is_empty() {
        text(StatusCode::OK, "ready\n")
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n")
    }
}

async fn metrics(State(sources): State<Arc<Sources>>) -> Response {
    match sources.metrics.print().await {
        Some(page) => respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page),
        None => text(
            StatusCode::NOT_FOUND,
            "this program records its metrics itself: look for them where it publishes them\n",
        ),
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response {
    respond(status, "text/plain; charset=utf-8", body.into())
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, body).into_response()
}

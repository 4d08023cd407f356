//! The page: three files that are part of the program, and nothing from anywhere else.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const HTML: &str = include_str!("page/dashboard.html");
const STYLE: &str = include_str!("page/dashboard.css");
const SCRIPT: &str = include_str!("page/dashboard.js");

pub(super) fn router() -> Router {
    Router::new()
        .route("/", get(async || text("text/html; charset=utf-8", HTML)))
        .route("/dashboard.css", get(async || text("text/css; charset=utf-8", STYLE)))
        .route("/dashboard.js", get(async || text("text/javascript; charset=utf-8", SCRIPT)))
}

fn text(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, content_type)], text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy that is sent with the page would stop it; this says so before a browser is opened.
    #[test]
    fn the_page_runs_and_loads_nothing_but_its_own_files() {
        let html = HTML.to_ascii_lowercase();
        for word in
            ["<script>", "style=", "onclick=", "onload=", "onerror=", "http:", "https:", "javascript:", "<style"]
        {
            assert!(!html.contains(word), "{word}");
        }
        // Texts of clients become text nodes and never markup.
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http:", "https:"] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}

//! Part of Respool; see ARCHITECTURE.md.

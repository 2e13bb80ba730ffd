//! holdup-views

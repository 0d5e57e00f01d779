//! CodeCall: the server.

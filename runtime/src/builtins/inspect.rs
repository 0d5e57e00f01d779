//! Values as `util.inspect` of Node prints them.

"""The HTTP server: what is stored, given to browsers and other programs, read-only (public: ``zardine.serve``)."""

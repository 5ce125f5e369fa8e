"""The page that shows what is stored, and what it asks the server for (public: ``zardine.view``)."""

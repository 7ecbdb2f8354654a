"""Physical readers: each turns one file or frame into a `Table`; none of them knows a vendor's layout."""

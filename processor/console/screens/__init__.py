"""The screens of the console: each makes the content of a page, which is also its JSON, and some make an edit."""

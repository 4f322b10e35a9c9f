"""Gates: when a changed root goes out (`publish` of a product), and what the job must remember of the roots that wait."""

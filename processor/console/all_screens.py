"""All screens of the console, in the order of the menu."""

from typing import Final

from processor.console.screen import Screen
from processor.console.screens.costs_screen import COSTS
from processor.console.screens.documents_screens import DOCUMENTS
from processor.console.screens.edit_screen import EDIT
from processor.console.screens.history_screens import HISTORY
from processor.console.screens.letters_screens import LETTERS
from processor.console.screens.overview_screen import OVERVIEW
from processor.console.screens.products_screens import PRODUCTS
from processor.console.screens.slots_screen import SLOTS

SCREENS: Final[tuple[Screen, ...]] = (OVERVIEW, SLOTS, EDIT, *PRODUCTS, *DOCUMENTS, *LETTERS, *HISTORY, COSTS)

"""Look through the stills of an anonymized bag on its contact sheet, before the bag leaves."""

"""What verbs print: lines, bars and reports. This room holds no facts: a room of tools or of the job finds what it prints."""

"""What limits an answer: failures, refused trials, other answers, growth and warming up."""

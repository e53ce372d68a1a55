from gapwatch.pages.sentences.taxonomy import headline


def test_words_that_point_nowhere_are_counted():
    assert str(headline(0)) == "Every word of your episodes that could be evidence points to a gap category."
    assert str(headline(1)).startswith("1 word of your episodes points to no gap category.")
    assert str(headline(3)).startswith("3 words of your episodes point to no gap category.")

from markupsafe import Markup, escape

from gapwatch.pages.sentences.sentence import Part, say, small, strong, together


def test_a_sentence_is_words_for_tests_and_tags_for_pages():
    said = say("It loses ", strong("25.0 points"), " ", small("(21.0 to 28.0)"), ".")
    assert str(said) == "It loses 25.0 points (21.0 to 28.0)."
    assert escape(said) == 'It loses <strong>25.0 points</strong> <span class="ci">(21.0 to 28.0)</span>.'
    assert said.emphasised("strong") == ["25.0 points"]


def test_what_robots_sent_stays_text():
    said = say("<b>", Part("<script>", "code"), Part("</a>", "strong", '/?q="'))
    assert escape(said) == (
        '&lt;b&gt;<code>&lt;script&gt;</code><a href="/?q=&#34;"><strong>&lt;/a&gt;</strong></a>'
    )


def test_a_part_may_hold_what_is_markup_already():
    said = say(Part(Markup("<time>2 Nov</time>"), "strong"))
    assert escape(said) == "<strong><time>2 Nov</time></strong>" and str(said) == "2 Nov"


def test_sentences_are_joined_by_one_space_and_empty_ones_left_out():
    assert str(together(say("One."), None, say(""), say("Two."))) == "One. Two."

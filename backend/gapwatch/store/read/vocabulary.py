"""SQL of the words a project's episodes use: phases, labels, conditions and signals, with how often."""

from __future__ import annotations

from sqlalchemy import Connection, text

MOST_WORDS = 300

# Failures come from the rollups, whose size does not grow with the episodes; names from the interned sets.
_WORDS = text("""
WITH failures AS (
    SELECT s.phase, s.labels, sum(f.failures) AS n
    FROM rollup_failures f JOIN signatures s ON s.project_id = f.project_id AND s.id = f.signature_id
    WHERE f.project_id = :p AND f.tier = 'month' GROUP BY s.phase, s.labels
), words AS (
    SELECT 'phases' AS kind, phase AS word, sum(n)::bigint AS n FROM failures WHERE phase IS NOT NULL GROUP BY 2
    UNION ALL
    SELECT 'labels', label, sum(n)::bigint FROM failures, unnest(labels) AS label GROUP BY 2
    UNION ALL
    SELECT kind || 's', name, NULL FROM (
        SELECT DISTINCT kind, unnest(names) AS name FROM name_sets WHERE project_id = :p AND kind <> 'metric'
        UNION
        SELECT 'condition', jsonb_object_keys(levels) FROM condition_sets WHERE project_id = :p) used
)
SELECT kind, word, n FROM words ORDER BY kind, n DESC NULLS LAST, word
""")


def words_used(connection: Connection, project_id: int) -> dict[str, dict[str, int | None]]:
    """Kind → word → how many failures say it; None for conditions and signals, which are only known to occur."""
    by_kind: dict[str, dict[str, int | None]] = {}
    for row in connection.execute(_WORDS, {"p": project_id}):
        words = by_kind.setdefault(row.kind, {})
        if len(words) < MOST_WORDS:
            words[row.word] = row.n
    return by_kind

"""Which events concern a deployment, as a condition in SQL; for everything that reads events."""

from __future__ import annotations


def concerns(deployment: str, slug: str) -> str:
    """The condition on a row `e` of events, given the expressions of a deployment's number and slug.

    An event of a deployment concerns only that, also one told of before its first episode (`awaited`). One that
    names a site or robots concerns the deployments that had real episodes there, or with one of them. Any other
    concerns the whole project. The inner selects depend on no event, so they are read once, and only if asked for.
    """
    places = f"""FROM rollup_places r JOIN {{names}} n ON n.project_id = r.project_id AND n.id = r.{{column}}
        WHERE r.project_id = :p AND r.domain = 'real' AND r.source_id = {deployment}"""
    sites = "SELECT n.name " + places.format(names="sites", column="site_id")
    robots = "SELECT n.name " + places.format(names="robots", column="robot_id")
    listed = "CASE jsonb_typeof(e.details -> 'robots') WHEN 'array' THEN e.details -> 'robots' ELSE '[]' END"
    return f"""(e.deployment_id = {deployment} OR e.awaited = {slug} OR (
        e.deployment_id IS NULL AND e.awaited IS NULL
        AND (jsonb_typeof(e.details -> 'site') IS DISTINCT FROM 'string' OR e.details ->> 'site' IN ({sites}))
        AND ({listed} = '[]'
             OR EXISTS (SELECT 1 FROM jsonb_array_elements_text({listed}) one WHERE one IN ({robots})))))"""  # noqa: S608

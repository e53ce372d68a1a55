"""Numbers of rows that tell one tenant nothing of another.

A number that is counted over all projects says how busy the others are to whoever sees two of them. So each
project counts for itself: a trigger takes the number from a sequence of the project and the table, made with the
first row. Sequences wait for nobody, where a row that counts would be locked until its transaction ends. People
are in several projects; their numbers are drawn.

Put on after the migrations, from the catalogue, so that no table of a later release can forget it. Decision 0040.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

# They run as the owner of the tables: the role of tenants neither makes sequences nor looks at anybody's rows.
_FUNCTIONS = (
    """
    CREATE OR REPLACE FUNCTION public.take_number_of_project() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    DECLARE
        sequence text := format('public.%I', TG_TABLE_NAME || '_of_' || NEW.project_id);
        highest int;
    BEGIN
        IF to_regclass(sequence) IS NULL THEN
            EXECUTE format('SELECT coalesce(max(id), 0) FROM public.%I WHERE project_id = $1', TG_TABLE_NAME)
                INTO highest USING NEW.project_id;
            BEGIN
                EXECUTE format('CREATE SEQUENCE %s AS int START %s', sequence, highest + 1);
            EXCEPTION WHEN unique_violation OR duplicate_table THEN
                NULL;  -- another transaction was first
            END;
        END IF;
        NEW.id := nextval(sequence::regclass);
        RETURN NEW;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION public.draw_number() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    DECLARE
        is_taken boolean := true;
    BEGIN
        WHILE is_taken LOOP
            -- At most nine digits, as forms take them.
            NEW.id := 1 + floor(random() * 999999999)::int;
            EXECUTE format('SELECT EXISTS (SELECT FROM public.%I WHERE id = $1)', TG_TABLE_NAME)
                INTO is_taken USING NEW.id;
        END LOOP;
        RETURN NEW;
    END $$
    """,
)
_DRAWN = {"users"}


def number_rows(connection: Connection) -> list[str]:
    """Let every table with an integer `id` and a project count by project; return the names of new ones."""
    for function in _FUNCTIONS:
        connection.execute(text(function))
    names = connection.scalars(
        text("""
        SELECT c.relname FROM pg_class c
        JOIN pg_attribute i ON i.attrelid = c.oid AND i.attname = 'id' AND i.atttypid = 'int4'::regtype
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT i.attisdropped
        AND (c.relname = ANY(:drawn) OR EXISTS (
            SELECT FROM pg_attribute p
            WHERE p.attrelid = c.oid AND p.attname = 'project_id' AND NOT p.attisdropped))
        AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'number_of_row')
        ORDER BY 1
        """),
        {"drawn": sorted(_DRAWN)},
    ).all()
    for name in names:
        function = "draw_number" if name in _DRAWN else "take_number_of_project"
        connection.execute(text(f"ALTER TABLE {name} ALTER id DROP IDENTITY IF EXISTS"))
        connection.execute(
            text(
                f"CREATE TRIGGER number_of_row BEFORE INSERT ON {name} FOR EACH ROW WHEN (NEW.id IS NULL)"
                f" EXECUTE FUNCTION public.{function}()"
            )
        )
    return list(names)

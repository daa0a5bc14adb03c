{% test unique_key(model, columns) %}
-- Rows without a part of the key, and keys with several rows.
SELECT {{ columns | join(', ') }}, count(*) AS found
FROM {{ model }}
GROUP BY {{ columns | join(', ') }}
HAVING count(*) > 1{% for column in columns %} OR {{ column }} IS NULL{% endfor %}
{% endtest %}

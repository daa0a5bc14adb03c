-- Every record is in one day.
SELECT day
FROM (SELECT *, lag(last_sequence, 1, -1) OVER (ORDER BY day) AS before FROM {{ source('analytics', 'days') }}) days
WHERE first_sequence <> before + 1

-- An application has a result and an end exactly if it is not open. Its steps are in the order of time.
SELECT id, status, result, created_at, started_at, ended_at
FROM {{ source('analytics', 'onboarding_cases') }}
WHERE (result IS NULL) <> (status IN ('pending', 'ongoing', 'blocked')) OR (result IS NULL) <> (ended_at IS NULL)
    OR started_at < created_at OR ended_at < created_at OR ended_at < started_at

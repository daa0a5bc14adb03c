SELECT date_trunc('month', day)::date AS month, tenant, entitlement_id, max(entitlement) AS entitlement, owner_type, sum(created) AS created,
    sum(started) AS started, sum(asked_for_more) AS asked_for_more, sum(video) AS video, sum(succeeded) AS succeeded,
    sum(rejected) AS rejected, sum(failed) AS failed, sum(canceled) AS canceled, sum(terminated) AS terminated, sum(open) AS open, sum(succeeded) / NULLIF(sum(created - open), 0) AS success_rate,
    sum(extract(epoch FROM time_to_success) * succeeded) / NULLIF(sum(succeeded), 0) AS seconds_to_success, max(sequence) AS sequence
FROM {{ source('analytics', 'onboarding_funnel') }}
GROUP BY 1, tenant, entitlement_id, owner_type

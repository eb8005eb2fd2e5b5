-- The health of a DurableJob. See docs/gitops.md.
local hs = {status = "Progressing", message = "The operator has not seen the last change yet"}
local status = obj.status
if status == nil or status.phase == nil or status.observedGeneration ~= obj.metadata.generation then
  return hs
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    conditions[condition.type] = condition
  end
end

-- A condition in words, or the second text if it does not hold.
local function words(condition, otherwise)
  if condition == nil then
    return otherwise
  end
  return condition.reason .. ": " .. condition.message
end

if status.phase == "Succeeded" then
  hs.status = "Healthy"
  hs.message = words(conditions.Partial or conditions.Complete, "The job has succeeded")
elseif status.phase == "Failed" then
  hs.status = "Degraded"
  hs.message = words(conditions.Failed, "The job has failed")
elseif status.phase == "Cancelled" then
  -- Not healthy: what waits for the job must not go on without its result.
  hs.status = "Degraded"
  hs.message = words(conditions.Cancelled, "The job was cancelled")
elseif conditions.Stalled ~= nil then
  hs.status = "Degraded"
  hs.message = words(conditions.Stalled)
elseif status.phase == "Suspended" then
  hs.status = "Suspended"
  hs.message = "spec.suspend is true"
elseif status.waiting ~= nil then
  hs.message = words(status.waiting)
else
  hs.message = status.phase
end
return hs

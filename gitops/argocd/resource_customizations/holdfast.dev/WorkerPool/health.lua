-- The health of a WorkerPool. See docs/gitops.md.
local hs = {status = "Progressing", message = "The operator has not seen the last change yet"}
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return hs
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local stalled, available = conditions.Stalled, conditions.Available
if stalled ~= nil and stalled.status == "True" then
  hs.status = "Degraded"
  hs.message = stalled.reason .. ": " .. stalled.message
elseif available ~= nil and available.status == "True" then
  hs.status = "Healthy"
  hs.message = (status.idle or 0) .. " idle, " .. (status.busy or 0) .. " busy"
elseif available ~= nil then
  hs.message = available.reason .. ": " .. available.message
end
return hs

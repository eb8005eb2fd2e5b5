-- The health of a JobQueue. A queue that is full does its work, so it is healthy. See docs/gitops.md.
local hs = {status = "Progressing", message = "The operator has not seen the last change yet"}
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return hs
end

if obj.spec ~= nil and obj.spec.hold == true then
  hs.status = "Suspended"
  hs.message = "spec.hold is true: nothing new starts"
else
  hs.status = "Healthy"
  hs.message = (status.running or 0) .. " running, " .. (status.waiting or 0) .. " waiting"
end
return hs

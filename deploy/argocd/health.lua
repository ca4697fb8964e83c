-- The health of an S3Sink. Phases, conditions and reasons: docs/status.md and docs/kubernetes.md.
-- Argo CD has the libraries base, table and a part of os, but none for strings.

local progressing = {
  Creating = true,
  Starting = true,
  Updating = true,
  WaitingForFormerDriver = true,
  FailedScheduling = true,
  Pausing = true,
  Stopping = true,
}
-- A scheduled run that starts does not change the health; one that cannot start does.
local between_runs = { WaitingForSchedule = true, Creating = true, Starting = true }

local status = obj.status or {}
local generation = obj.metadata.generation

local function condition(type)
  for _, each in ipairs(status.conditions or {}) do
    if each.type == type then
      return each
    end
  end
  return {}
end

local function health(word, message)
  return { status = word, message = message or ("the phase is " .. (status.phase or "not known")) }
end

local accepted, ready = condition("Accepted"), condition("Ready")

-- After an operator error observedGeneration of the status is old, so this comes first.
if ready.reason == "OperatorError" and ready.observedGeneration == generation then
  return health("Degraded", ready.message)
end
if status.observedGeneration ~= generation then
  return health("Progressing", "the operator has not seen this generation yet")
end
if accepted.status == "False" then
  -- Ready has the same cause, and also says what still runs.
  return health("Degraded", ready.reason == "SpecRefused" and ready.message or accepted.message)
end
if status.phase == "Degraded" or status.phase == "Failed" then
  return health("Degraded", ready.message)
end
if obj.spec.run == "Scheduled" and between_runs[ready.reason] then
  return health("Healthy", ready.message)
end
if progressing[ready.reason] and ready.status == "False" then
  return health("Progressing", ready.message)
end
if status.phase == "Paused" or status.phase == "Stopped" then
  return health("Suspended", ready.message)
end
if ready.status == "True" then
  return health("Healthy", ready.message)
end
return health("Degraded", ready.message)

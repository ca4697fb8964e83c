local phase = (obj.status or {}).phase
local state = obj.spec.state or "Running"
local run = obj.spec.run or "Continuous"

local complete = run == "Once" and phase == "Completed"
local ended = complete or (run == "Once" and phase == "Failed")

return {
  -- A run that has ended cannot be paused: a change of the spec would start another run.
  pause = { disabled = state ~= "Running" or ended, iconClass = "fa fa-fw fa-pause" },
  resume = { disabled = state == "Running", iconClass = "fa fa-fw fa-play" },
  stop = { disabled = state == "Stopped" or complete, iconClass = "fa fa-fw fa-stop" },
  -- Scheduled runs end by themselves, and between them there is no driver.
  restart = {
    disabled = state == "Stopped" or run == "Scheduled",
    displayName = ended and "Run again" or "Restart",
    iconClass = "fa fa-fw fa-redo",
  },
  -- The next driver does the reset, whenever it starts.
  reset = { disabled = false, iconClass = "fa fa-fw fa-undo" },
}

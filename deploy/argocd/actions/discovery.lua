local phase = (obj.status or {}).phase
local state = obj.spec.state or "Running"
local run = obj.spec.run or "Continuous"

local complete = run == "Once" and phase == "Completed"
local over = complete or (run == "Once" and phase == "Failed")

return {
  -- A run that is over cannot be paused, and another spec would be another run.
  pause = { disabled = state ~= "Running" or over, iconClass = "fa fa-fw fa-pause" },
  resume = { disabled = state == "Running", iconClass = "fa fa-fw fa-play" },
  stop = { disabled = state == "Stopped" or complete, iconClass = "fa fa-fw fa-stop" },
  -- Between the runs of a schedule there is no driver, and one that runs ends by itself.
  restart = {
    disabled = state == "Stopped" or run == "Scheduled",
    displayName = over and "Run again" or "Restart",
    iconClass = "fa fa-fw fa-redo",
  },
  -- The next driver carries it out, whenever that starts.
  reset = { disabled = false, iconClass = "fa fa-fw fa-undo" },
}

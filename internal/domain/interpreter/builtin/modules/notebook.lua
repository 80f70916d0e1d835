-- Module notebook: the container of a Notebook of Kubeflow.
local status = require("status")

local notebook = {}

local failures = { Error = true, OOMKilled = true, ContainerCannotRun = true }

-- isHealthy reports whether the container runs, is being created, or has exited without error.
function notebook.isHealthy(object)
  local state = status.table(status.get(object, "status", "containerState"))
  if state.running ~= nil then
    return true
  end
  if status.get(state, "waiting", "reason") == "ContainerCreating" then
    return true
  end
  local exited = status.table(state.terminated)
  return exited.exitCode == 0 and not failures[exited.reason or ""]
end

-- container returns the state of the container of a member, or nil if there is none.
function notebook.container(item)
  local state = status.get(item, "status", "containerState")
  if not status.isEmpty(state) then
    return state
  end
end

-- startTime returns the time at which a container started, or "".
local function startTime(state)
  local time = status.get(state, "running", "startedAt")
  return type(time) == "string" and time or ""
end

-- latestStart returns the state of the container that started last. If no container runs, it returns
-- the first state, or nil.
function notebook.latestStart(members)
  local latest
  for _, item in ipairs(members) do
    local state = notebook.container(item)
    if state and (not latest or startTime(state) > startTime(latest)) then
      latest = state
    end
  end
  return latest
end

return notebook

-- Module ray: the Pods of a Ray cluster. A cluster has a head and groups of workers. Its spec is the
-- spec of a RayCluster, and a part of the specs of a RayJob and a RayService.
local components = require("components")
local dependencies = require("dependencies")
local status = require("status")

local ray = {}

-- groups returns the groups of workers, which may be empty.
function ray.groups(spec)
  return status.get(spec, "workerGroupSpecs") or {}
end

-- components returns the head and each group of workers. The spec may be nil.
function ray.components(spec)
  local list = {}
  local head = status.get(spec, "headGroupSpec")
  if head then
    components.add(list, "ray-head", 1, head.template)
  end
  for i, group in ipairs(ray.groups(spec)) do
    local name = status.isEmpty(group.groupName) and "worker-" .. i or group.groupName
    components.add(list, name, group.replicas or 0, group.template)
  end
  return list
end

-- dependencies returns references to the objects that the Pods of the cluster need. The spec may be
-- nil.
function ray.dependencies(spec, namespace)
  local list = {}
  dependencies.addPod(list, namespace, status.get(spec, "headGroupSpec", "template"))
  for _, group in ipairs(ray.groups(spec)) do
    dependencies.addPod(list, namespace, group.template)
  end
  return list
end

return ray

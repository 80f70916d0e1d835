-- Module components: the parts of an object that have a number of replicas and a Pod template of their
-- own.
local kube = require("kube")

local components = {}

-- requirements returns the requirements of one Pod of a template, or nil if there are none. The
-- template may be nil.
function components.requirements(template)
  if type(template) == "table" then
    return kube.accuratePodRequirements(template)
  end
end

-- add appends a component to the list.
function components.add(list, name, replicas, template)
  table.insert(list, {
    name = name,
    replicas = replicas,
    replicaRequirements = components.requirements(template),
  })
end

return components

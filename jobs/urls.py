"""Native API routes for job templates, runs, schedules and the system catalog."""

from jobs.api.runs import Job, JobLog, JobProgress, Jobs
from jobs.api.schedules import Schedule, Schedules
from jobs.api.system import SystemCatalog
from jobs.api.templates import JobTemplate, JobTemplates
from metalake.rest.views import route

JOBS = "metalakes/<metalake>/jobs"

urlpatterns = [
    route(f"{JOBS}/templates", JobTemplates),
    route(f"{JOBS}/templates/<job_template>", JobTemplate),
    route(f"{JOBS}/runs", Jobs),
    route(f"{JOBS}/runs/<job>", Job),
    route(f"{JOBS}/runs/<job>/progress", JobProgress),
    route(f"{JOBS}/runs/<job>/logs", JobLog),
    route(f"{JOBS}/schedules", Schedules),
    route(f"{JOBS}/schedules/<schedule>", Schedule),
    route("metalakes/<metalake>/system", SystemCatalog),
]

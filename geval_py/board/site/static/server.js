// Uploads show how far they are, and states move by themselves; without scripts, forms and links do the same.
"use strict";

const root = new URL("..", document.currentScript.src); // of the board, which may have a path

for (const place of document.querySelectorAll("[data-upload]")) {
  let pause = 1000;
  const look = async () => {
    const answer = await fetch(`${root}api/uploads/${place.dataset.upload}`).catch(() => null);
    const upload = answer?.ok ? await answer.json() : null;
    if (upload?.settled) {
      location.reload();
      return;
    }
    pause = Math.min(pause * 1.3, 15_000);
    setTimeout(look, pause);
  };
  setTimeout(look, pause);
}

for (const form of document.querySelectorAll("[data-archives]")) {
  const [input, progress, told] = ["input[type=file]", "progress", "[data-answer]"].map((of) => form.querySelector(of));
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
  form.addEventListener("submit", (event) => {
    const file = input.files[0];
    if (!file) return;
    event.preventDefault();
    const query = new URLSearchParams();
    const name = file.name.toLowerCase();
    const isArchive = form.dataset.archives.split(" ").some((ending) => name.endsWith(ending));
    if (!isArchive) query.set("test", form.elements.test.value);
    if (new FormData(form).get("dry")) query.set("dry", "yes");
    const request = new XMLHttpRequest();
    request.open("PUT", `${root}upload/${encodeURIComponent(file.name)}?${query}`);
    request.upload.onprogress = (moved) => { progress.value = moved.loaded / moved.total; };
    request.onloadend = () => {
      const answer = JSON.parse(request.responseText || "{}");
      progress.hidden = true;
      if (answer.number) location.assign(`${root}me/uploads/${answer.number}`);
      else told.textContent = answer.error ?? "The upload did not arrive; send it again.";
    };
    told.textContent = "";
    progress.hidden = false;
    request.send(file);
  });
}

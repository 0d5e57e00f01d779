const { users } = codecallContext;
return users
  .filter((user) => user.active && user.score > 20)
  .map((user) => ({ id: user.id, name: user.name, label: `${user.name} <${user.email}>` }));
